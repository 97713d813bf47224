"""Pictures of results.

Charts are Vega-Lite specifications, plain dictionaries. In the report they are drawn as SVG by
Vega, Vega-Lite and Vega-Embed, which are inside the file with their licences (0.83 MB;
`tools/vega.py` fetches and checks them). Colours are the colour-blind safe palette of Okabe and
Ito, some darkened or brightened until they stand out enough from the ground.
"""

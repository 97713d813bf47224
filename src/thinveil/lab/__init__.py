"""The live page: an attack that a room can watch.

An attack runs in a thread of its own, in the same loop as every other attack; its target is
wrapped so that questions can be held back, which is all that pausing and stepping needs. What
happens goes to the browser as numbered server-sent events, so a connection that broke goes on
where it was. The front end is plain JavaScript modules: nothing to build, nothing loaded from
elsewhere.

Shiny for Python was the other candidate. Its variant that runs wholly in a browser brings Python
and NumPy to every visitor; recordings of 7 to 430 kB are enough for a page without an install.
"""

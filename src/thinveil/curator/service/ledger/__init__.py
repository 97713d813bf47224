"""The ledger of a service on disk: its tables, chain, seal, and what keeps watch over them."""

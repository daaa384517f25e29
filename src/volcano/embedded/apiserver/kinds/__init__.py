"""What the server knows of each kind: one strategy per kind or family, listed in `strategy_table`.

A strategy prepares, defaults and validates objects, allocates what only the server can, and defines what a delete
means. Verbs and subresources ask the strategy and do not tell kinds apart.
"""

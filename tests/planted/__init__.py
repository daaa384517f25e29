"""Planted causes: random clusters with other load into which one known cause of waiting or failing is planted.

`causes` has the kinds of causes, `campaign` plants many of them by seed and compares what the explanation says.
"""

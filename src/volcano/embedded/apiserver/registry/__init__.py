"""The table of served resources, the selection of their objects, and the watches on them."""

"""What objects may look like: schemas compiled to walkers, patches that know lists, tables, and OpenAPI documents.

Everything here is a pure function of plain JSON; who calls it, and when, is the business of the verbs.
"""

"""Authentication of callers, role-based authorization, and the default roles."""

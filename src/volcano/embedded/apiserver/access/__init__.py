"""Who is calling and what they may do: authentication, role-based authorization, the default roles."""

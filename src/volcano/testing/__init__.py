"""The public test kit: whole systems on virtual time, pure worlds of objects, and builders of clusters."""

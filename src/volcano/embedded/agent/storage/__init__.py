"""Volumes of pods as folders and files, and the provisioner of claims."""

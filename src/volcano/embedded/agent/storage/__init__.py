"""Volumes of pods as folders and files, and the provisioner that makes folders for PersistentVolumeClaims.

Mounting them into a container is done in `processes`; binding claims to volumes in embedded/cluster.
"""

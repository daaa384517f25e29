"""The policies, one file (or folder) per name in volcano-scheduler.conf."""

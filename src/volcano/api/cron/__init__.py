"""Cron schedules: the dialect, which run is due, and which finished runs are kept."""

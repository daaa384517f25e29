"""What a pod does next and how its status looks; pure."""

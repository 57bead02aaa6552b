"""What every process of ours needs: settings, logs, tasks, HTTP, exposition."""

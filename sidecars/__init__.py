"""What stands beside interactive software during a run, each in a container of ours."""

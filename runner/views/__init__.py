"""What people see of runs and leaderboards, each audience its part."""

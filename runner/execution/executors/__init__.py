"""Who does the steps of a plan: the machine that coordinates, or hosts of a cluster."""

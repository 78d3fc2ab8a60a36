"""Report generation: cited reports, judged by nuggets and sources."""

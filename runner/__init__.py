"""The trusted side: reads tasks, starts containers, keeps the archive, ranks."""

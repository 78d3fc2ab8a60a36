"""Whom work knows: accounts and their members, tokens and other ways to sign in, and who waits to become one."""

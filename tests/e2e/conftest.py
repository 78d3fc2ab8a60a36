"""Tests that need what not every machine has are collected only when it is named."""

from __future__ import annotations

import os

# TEST_BROWSER=/usr/bin/chromium: the pages are opened in that browser as well.
collect_ignore = [] if os.environ.get("TEST_BROWSER") else ["test_pages_in_browser.py"]

"""Files of the tasks of reports: reports, requests, nuggets, documents and judgments, read and written."""

"""The front: pages, sign-in and hand-in over HTTP. It reads ``published/``, writes ``inbox/``, and knows nothing else of ours."""

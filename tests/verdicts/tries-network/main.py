import socket
import sys

import common

common.write(common.good_lines())
found = []
for family, address in ((socket.AF_INET, ("192.0.2.1", 80)), (socket.AF_INET, ("172.17.0.1", 22))):
    with socket.socket(family) as way:
        way.settimeout(1)
        try:
            way.connect(address)
            found.append(address)
        except OSError as error:
            print(address, error)
try:
    found.append(socket.getaddrinfo("example.org", 80))
except OSError as error:
    print("example.org", error)
sys.exit(0 if found else 1)

"""Prints the tasks of a set's domain, a JSON value a line.

    python3 list.py tau2 retail
"""

import json
import sys

from sets import set_named

if __name__ == "__main__":
    name, domain = sys.argv[1:]
    for row in set_named(name).list_tasks(domain):
        print(json.dumps(row))

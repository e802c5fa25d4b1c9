"""Reads `.wtrc` files: `python3 decoder/reference csv|check|accesses FILE [--track N]`.

`csv` prints what `warptrace decode --format csv` does; `check` says what is wrong with a file, as `warptrace verify`; `accesses`
prints each address and value of each lane.
Exit codes: 0 nothing is wrong, 1 the file cannot be read, 3 something is wrong with it.
"""

import argparse
import sys

from accesses import write_accesses
from findings import check_file
from parts import Damage
from rows import write_csv
from trace import Refused, Trace


def main():
    parser = argparse.ArgumentParser(prog="reference", description=__doc__)
    parser.add_argument("command", choices=["csv", "check", "accesses"])
    parser.add_argument("file")
    parser.add_argument("--track", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.command == "check":
        code, found = check_file(arguments.file)
        for words in found:
            print(words, file=sys.stderr if code == 1 else sys.stdout)
        return code
    try:
        with open(arguments.file, "rb") as file:
            trace = Trace(file.read())
            if arguments.command == "accesses":
                write_accesses(trace, sys.stdout)
            else:
                write_csv(trace, arguments.track, sys.stdout)
    except (Refused, Damage) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

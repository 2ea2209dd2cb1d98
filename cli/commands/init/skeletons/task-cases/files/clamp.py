import sys


def clamp(value, low, high):
    return low if value < low or value > high else value


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(2)
    print(clamp(*map(int, sys.argv[1:])))

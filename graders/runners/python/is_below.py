import os


def is_below(place, folder):
    """
    Whether a path is the folder or in it, as it is written or with links followed; what is no absolute path is not. A link of
    the work leads out of its workdir, and what is found there may be the work's too.
    """
    if not isinstance(place, str) or not place.startswith("/"):
        return False
    above = os.path.realpath(folder) + os.sep
    return any((one + os.sep).startswith(above) for one in (os.path.abspath(place), os.path.realpath(place)))

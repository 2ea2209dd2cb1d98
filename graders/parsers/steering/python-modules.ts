/**
 * Modules that a Python test run loads by name: the standard library's of Python 3.10 to 3.13 (`sys.stdlib_module_names`)
 * and pytest's own. A file of such a name in the workdir can stand in the module's place.
 */
export const pythonModules = `
  __future__ _bootsubprocess _collections_abc _colorize _compat_pickle _compression _markupbase _py_abc _pydatetime _pyrepl _pytest
  _sitebuiltins _strptime _threading_local _weakrefset abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb
  binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall
  concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis
  distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc
  genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib iniconfig
  inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder
  msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb
  pickle pickletools pipes pkgutil platform plistlib pluggy poplib posix posixpath pprint profile pstats pty pwd py py_compile pyclbr
  pydoc pydoc_data pyexpat pytest queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors
  shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat
  statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios
  textwrap threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle types typing unicodedata
  unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport
  zlib zoneinfo
`
  .trim()
  .split(/\s+/);

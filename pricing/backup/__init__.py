"""Backups: everything that an installation keeps, in one archive, and its restore.

archive   the archive of a backup: a zip file with a manifest of its content
checking  check the price files of an archive in a process of its own, whose memory and
          seconds the kernel limits
make      make a backup while the server works: the store, prices, price books,
          calibrations
restore   restore a backup: unpack and check everything next to the data, then swap it in
"""

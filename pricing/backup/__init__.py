"""Everything that an installation keeps in one archive, and back.

archive  the archive of a backup: a zip file whose manifest says what is in it
make     make a backup while the server works: the store, prices, price books, calibrations
restore  put a backup back: everything is unpacked and checked beside the data first, then
         swapped in

    archive  the archive of a backup: a zip file whose manifest says what is in it
    make     make a backup while the server works: the store, prices, price books, calibrations
    restore  put a backup back: everything is unpacked and checked beside the data first, then
             swapped in
"""

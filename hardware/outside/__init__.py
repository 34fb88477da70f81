"""The one reader of bytes from outside: JSON, CSV, packed files, and their texts.

csv_text   rows of a CSV text whose columns are counted, each name once
interrupt  end long work of a thread: a check that parsers and searches call often
json_text  JSON whose size in memory is judged before it is parsed
kept       keep what was parsed by the hash of its bytes, refusals too; one file at a time
packed     gzip and zip that are unpacked no further than a bound
text       characters that would command a terminal or turn the direction of a text
"""

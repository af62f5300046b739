"""Parse collections: from files, folders and URLs to a folder of trees, in runs that resume.

    folder      the output folder, local or remote: files that are there whole or not at all
    pieces      long files cut at sentence ends; memory does not grow with the file
    documents   a piece of text, CoNLL-U, JSON lines or Parquet to sentences with their places
    records     an analysis as a row of JSON lines, brackets, CoNLL-U or Parquet
    job         what a run was asked to do, and its tasks
    work        one task, done by whoever has a parser
    ledger      which documents are done: markers in the output folder; what is to do next
    crew        worker processes on this machine
    scheduler   workers of a dask.distributed scheduler
    run         the whole: find, check, share out, sum up

The output folder alone decides what is done. A marker is written after the output it stands for,
so a run may be killed at any moment and started again.
"""

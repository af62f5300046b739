"""Answer collections: from files, folders and URLs to a folder of outputs, in runs that resume.

    chunks      long files cut at sentence ends; memory does not grow with the file
    documents   a chunk of text, CoNLL-U, JSON lines or Parquet to sentences with their places
    tasks       what a run was asked to do, and the tasks that it is shared out in
    output      answers as JSON lines, Parquet or a form of their kind
    worker      one task, done by whoever has the model
    engine      tasks on the workers of an executor, whatever dies meanwhile
    checkpoint  which documents are done: records in the output folder; what is to do next
    run         the whole: find, check, share out, sum up

The output folder alone decides what is done. A record is written after the output it stands for, so
a run may be killed at any moment and started again.
"""

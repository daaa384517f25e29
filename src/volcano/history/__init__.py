"""What happened: every job, its pods, phases, placements and evictions, kept after the objects are gone.

A recorder follows the API server through the client, folds each change into rows (`fold`, pure) and writes them in
batches (`batch`) into SQLite or PostgreSQL (`database`). `History` answers questions (`questions`) with the records of
`volcano.api.history_records`; `serving` answers the same over HTTP, within the rights of who asks.

Read API, for code in the process that has the database:

    history = History(database, clock)
    page = await history.jobs(JobQuestion(queue="research", states=("ended",), sort="ended", limit=50))
    story = await history.story(page.jobs[0].uid)
    rows = await history.usage(UsageQuestion(since=monday, until=now, by=("day", "user")))
    then = await history.moment(ten_minutes_ago)
    jobs_then = await history.jobs(JobQuestion(at=ten_minutes_ago))
"""

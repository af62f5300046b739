"""Jobs: lines that are kept and answered in their own time, also after a restart."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from lpcfg.base.errors import Stopped
from lpcfg.protocol.schemas import BatchLine, JobAnswer, Problem
from lpcfg.serve.http.context import context_of
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import Refused, documented, problem
from lpcfg.serve.http.requests import GuardedRoute, pieces
from lpcfg.serve.jobs import ATTEMPTS, Draft, Facts, Job, Jobs, Progress, new_id
from lpcfg.serve.routes.batch import LINES, InQuery
from lpcfg.serve.state import JOBS, Service, TheService

_AGAIN = 60.0  # seconds after which a job may be offered again to a full disk
_BLOCK = 1 << 18  # bytes of a body or of answers that are written or read at once
_NONE = "expected a service that keeps jobs, got one without: start it with LPCFG_JOBS_DIR"

guarded = APIRouter(route_class=GuardedRoute, dependencies=[Depends(BEARER)])
router = APIRouter(dependencies=[Depends(BEARER)])


@guarded.post(
    JOBS,
    status_code=202,
    responses=documented(
        *("content", "limit", "body-limit", "media-type"),
        *("not-found", "key", "overload", "starting"),
    ),
    openapi_extra=LINES,
    summary="Leave lines to be parsed",
)
async def begin(
    request: Request,
    response: Response,
    service: TheService,
    asked: InQuery,
    idempotency_key: Annotated[
        str | None,
        Header(description="sent again, it names the same job", max_length=256, min_length=1),
    ] = None,
) -> JobAnswer:
    """Keep the lines of the body, as /v1/batch takes them, and answer them when there is time.

    Once this is answered, the job survives a restart of the service. A used-up quota is waited for.
    """
    jobs = _jobs(service)
    context = context_of(request.scope)
    jobs.check(context.client)
    name = new_id(context.client, idempotency_key)
    draft = jobs.draft()
    try:
        await asyncio.to_thread(draft.open)
        await _receive(request, draft, service.settings.job_bytes)
        facts = Facts(
            name,
            context.client,
            context.key,
            time.time(),
            draft.lines,
            {"model": request.query_params.get("model"), **asked.options.as_json()},
            context.traceparent(),
        )
        job = await asyncio.to_thread(draft.finish, facts, jobs.home)
    except OSError as error:
        raise Refused(
            "overload",
            f"expected room for a job on the disk, got `{error.strerror}`: try again later, or use "
            "/v1/batch",
            retry_after=_AGAIN,
        ) from error
    finally:
        await asyncio.to_thread(draft.drop)
    response.headers["Location"] = f"{JOBS}/{name}"
    return _told(jobs, job)


async def _receive(request: Request, draft: Draft, most: int) -> None:
    """Write the body to the disk as it comes, expanded."""
    kept = bytearray()
    try:
        async for piece in pieces(request, most):
            kept += piece
            if len(kept) >= _BLOCK:
                await asyncio.to_thread(draft.write, bytes(kept))
                kept.clear()
    except ClientDisconnect:
        raise Stopped("expected the rest of the body, got a closed connection") from None
    await asyncio.to_thread(draft.write, bytes(kept))


async def key_name(request: Request, service: TheService) -> str | None:
    """Return the name of the key of who asks about a job; None where no keys are asked for."""
    return None if service.keys is None else service.keys.owner(request.headers).name


async def the_job(
    id: str, service: TheService, name: Annotated[str | None, Depends(key_name)]
) -> Job:
    """Return the job with the id in the path, if it is of the key of who asks."""
    found = await asyncio.to_thread(_jobs(service).find, id)
    if found is None or found.facts.key != name:
        raise Refused("not-found", "expected the id of a job that is kept, got another: correct it")
    return found


TheJob = Annotated[Job, Depends(the_job)]


@router.get(JOBS + "/{id}", responses=documented("key", "not-found"), summary="How far a job is")
async def status(job: TheJob, service: TheService) -> JobAnswer:
    """Return how many of the job's lines are answered."""
    return await asyncio.to_thread(_told, _jobs(service), job)


class AnswersResponse(StreamingResponse):
    """Answers as they stand in their file."""

    media_type = "application/x-ndjson"


@router.get(
    JOBS + "/{id}/answers",
    response_class=AnswersResponse,
    responses={
        200: {
            "description": "A line for each line answered so far, in order. The schema is that of "
            "a line.",
            "model": BatchLine,
        },
        **documented("content", "key", "not-found"),
    },
    summary="The answers of a job",
)
async def answers(
    job: TheJob,
    after: Annotated[int, Query(ge=0, lt=10**9, description="leave out lines up to this one")] = 0,
) -> Response:
    """Return the answers that are there, all of them once the job is done."""
    return AnswersResponse(_pieces(job.answers, after))


@router.delete(
    JOBS + "/{id}",
    status_code=204,
    responses=documented("key", "not-found"),
    summary="Delete a job",
)
async def delete(job: TheJob, service: TheService) -> None:
    """Stop the job if it is not done, and remove its lines and answers."""
    await asyncio.to_thread(_jobs(service).remove, job)


def _jobs(service: Service) -> Jobs:
    if service.jobs is None:
        raise Refused("not-found", _NONE)
    return service.jobs


def _told(jobs: Jobs, job: Job) -> JobAnswer:
    begun = job.progress()
    progress = begun or Progress()
    return JobAnswer(
        id=job.facts.id,
        status=_status(begun),
        lines=job.facts.lines,
        answered=progress.answered,
        problems=progress.problems,
        created=_time(job.facts.created),
        expires=_time(jobs.expires(job)),
        problem=_set_aside(progress.answered + 1) if progress.failed else None,
    )


def _status(begun: Progress | None) -> Literal["waiting", "running", "done", "failed"]:
    if begun is None:
        return "waiting"
    if begun.failed:
        return "failed"
    return "done" if begun.done else "running"


def _set_aside(line: int) -> Problem:
    """Tell at which line a job was set aside."""
    return problem(
        "job",
        f"expected to answer the lines from {line} on, got {ATTEMPTS} attempts that failed: send "
        "them as smaller jobs, without lines that are very long",
        line=line,
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _pieces(path: Path, after: int) -> AsyncIterator[bytes]:
    """Yield whole lines of a file behind those left out; a line still being written is none."""
    try:
        file = await asyncio.to_thread(open, path, "rb")
    except FileNotFoundError:  # nothing is answered yet
        return
    with file:
        passed, rest = 0, b""
        while chunk := await asyncio.to_thread(file.read, _BLOCK):
            whole, end, rest = (rest + chunk).rpartition(b"\n")
            lines = whole + end
            if passed < after:
                found = lines.splitlines(keepends=True)
                lines = b"".join(found[after - passed :])
                passed += len(found)
            if lines:
                yield lines

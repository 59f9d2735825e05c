"""Places that are URIs: every format in and out of a real S3 server, and what is left when something fails."""

import gc
import hashlib
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, SystemRefusedError, UsageError, without_secrets
from kafeat.io.options import OutputOptions
from kafeat.io.storage import atomic as atomic_files
from kafeat.io.storage import object_store as remote
from kafeat.io.storage import upload
from kafeat.io.storage.atomic import atomic, check_place, require_space, write_bytes
from kafeat.io.storage.base import Entry, Location
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.location import parse_location
from kafeat.jobs.transform.overlaps import InputPlace, OutputPlace, refuse_overlaps
from tests.io.object_store import BUCKET, Gate, Store
from tests.jobs.files import transform_file, transform_with_files_of
from tests.recipes import words
from tests.zygote import Process

pytestmark = pytest.mark.usefixtures("credentials")

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3000, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A map, and the same rows in every format."""
    path = tmp_path_factory.mktemp("locations")
    table = pa.table({f"x{i}": X[:, i] for i in range(X.shape[1])})
    (path / "fit.yaml").write_text(
        "chunk_rows: 512\nsteps: [{kind: fourier, n_components: 64, frequencies: iid, weights: uniform}]\n"
    )
    kafeat.fit(path / "fit.yaml", table).save(path / "m.joblib")
    np.save(path / "in.npy", X)
    np.save(path / "columns.npy", np.asfortranarray(X))
    np.save(path / "other.npy", X.astype(">f8"))
    pq.write_table(table, path / "in.parquet", row_group_size=700)
    pa.csv.write_csv(table, path / "in.csv")
    pyarrow.feather.write_feather(table, path / "in.arrow")
    (path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    for packing in ("gz", "zst"):
        with pa.output_stream(path / f"in.csv.{packing}") as stream:
            stream.write((path / "in.csv").read_bytes())
    return path


def copy_in(store: Store, folder: Path, *names: str) -> None:
    for name in names:
        store.put(name, (folder / name).read_bytes())


# -- every format


@pytest.mark.parametrize(
    "name", words("in.csv in.csv.gz in.csv.zst in.parquet in.arrow in.npy columns.npy other.npy in.jsonl")
)
def test_every_format_is_read_as_from_a_file(store, folder, tmp_path, name):
    copy_in(store, folder, name)
    transform_file(folder / "m.joblib", folder / name, tmp_path / "here.npy")
    done = transform_file(folder / "m.joblib", store.uri(name), tmp_path / "there.npy", hashed=True)
    assert (tmp_path / "here.npy").read_bytes() == (tmp_path / "there.npy").read_bytes()
    assert done.rows == len(X)
    assert done.input_sha256 == hashlib.sha256((folder / name).read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.csv.zst", "o.tsv", "o.parquet", "o.npy"])
def test_every_format_is_written_as_to_a_file(store, folder, tmp_path, name):
    transform_file(folder / "m.joblib", folder / "in.npy", tmp_path / name)
    transform_file(folder / "m.joblib", folder / "in.npy", store.uri(f"a/b/{name}"))
    assert store.get(f"a/b/{name}") == (tmp_path / name).read_bytes()
    assert store.keys() == [f"a/b/{name}"]


def test_the_whole_command_line_on_uris(store, folder, in_process):
    copy_in(store, folder, "in.parquet")
    data, model, out = store.uri("in.parquet"), store.uri("maps/m.joblib"), store.uri("out/f.parquet")
    stats = store.uri("out/f.json")
    calls = [
        ("fit", "--config", folder / "fit.yaml", data, model, "-v"),
        ("inspect", model),
        ("transform", "--model", model, data, out, "--stats", stats, "--rejects", store.uri("out/r.csv"),
         "--on-bad-rows", "drop", "-v"),
        ("verify", "--model", model, data, out, "--stats", stats, "--on-bad-rows", "drop", "-v"),
        ("evaluate", "--model", model, data, "--rows", "200", "--json", store.uri("e.json")),
        ("diff", model, folder / "m.joblib"),
    ]  # fmt: skip
    shown = []
    for call in calls:
        code, out, said = in_process(*call)
        assert code == 0, (call, said)
        shown.append(out + said)
    assert sorted(store.keys()) == words("e.json in.parquet maps/m.joblib out/f.json out/f.parquet out/r.csv")
    assert "endpoint_override" not in "".join(shown)
    assert "fitted on 3,000 of 3,000 rows of in.parquet" in shown[1]
    assert "no difference" not in shown[-1]  # the data have another name
    found = json.loads(store.get("out/f.json"))
    assert found["input"]["path"] == f"s3://{BUCKET}/in.parquet"
    assert found["input"]["bytes"] == (folder / "in.parquet").stat().st_size
    assert found["output"]["bytes"] == len(store.get("out/f.parquet"))
    assert json.loads(store.get("e.json"))["data"] == f"s3://{BUCKET}/in.parquet"


def test_the_endpoint_of_the_environment(store, folder, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{store.port}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    fm = kafeat.load(folder / "m.joblib")
    fm.save(f"s3://{BUCKET}/m.joblib")
    assert kafeat.load(f"s3://{BUCKET}/m.joblib").digest == fm.digest


@pytest.mark.slow
def test_a_large_object_goes_in_parts_and_comes_back(store, tmp_path):
    data = RNG.integers(0, 256, 25 << 20, dtype=np.uint8)
    np.save(tmp_path / "big.npy", data.reshape(-1, 1024))
    content = (tmp_path / "big.npy").read_bytes()
    with Gate(store.port) as gate:
        write_bytes(parse_location(store.uri("big.npy", port=gate.port)), content)
        assert gate.parts == 3
    assert store.get("big.npy") == content
    assert store.uploads() == []
    assert parse_location(store.uri("big.npy")).size() == len(content)


@pytest.mark.parametrize(("spelled", "key"), [
    ("two%20words.csv", "two words.csv"), ("ö/λ.csv", "ö/λ.csv"), ("a%23b%3Fc.csv", "a#b?c.csv"),
    ("%2520.csv", "%20.csv"), ("a+b=c&d@e.csv", "a+b=c&d@e.csv"),
    pytest.param("two words.csv", "two words.csv", marks=pytest.mark.slow),
    pytest.param("100%25.csv", "100%.csv", marks=pytest.mark.slow),
])  # fmt: skip
def test_odd_keys(store, folder, spelled, key):
    transform_file(folder / "m.joblib", folder / "in.npy", store.uri(spelled))
    fs, _ = remote.file_system(parse_location(store.uri("x")))
    found = fs.get_file_info(pa_fs.FileSelector(BUCKET, recursive=True))
    assert [one.path for one in found if one.type == pa_fs.FileType.File] == [f"{BUCKET}/{key}"]
    (entry,) = parse_location(store.uri("")).listed()
    assert entry.name == key
    again = parse_location(store.uri("")).join(entry.name)
    assert again.entry() == Entry(key.rpartition("/")[2], entry.bytes, entry.stamp)
    assert kafeat.fit(folder / "fit.yaml", again.text).provenance.sources[0].name == key.rpartition("/")[2]


# -- what is at a place


def test_places_of_an_object_store(store):
    for key in ("d/a.csv", "d/e/b.csv", "dd.csv"):
        store.put(key, b"123")
    root = parse_location(store.uri("d"))
    assert sorted(one.name for one in root.listed()) == ["a.csv", "e/b.csv"]
    assert [parse_location(store.uri(key)).kind() for key in ("d", "d/a.csv", "d/x", "d/e/")] == [
        "folder", "file", None, "folder",
    ]  # fmt: skip
    assert root.entry() is None
    assert root.join("e/b c.csv") == parse_location(store.uri("d/e/b%20c.csv"))
    file = parse_location(store.uri("d/a.csv"))
    before = file.entry()
    store.put("d/a.csv", b"1234")
    assert file.entry() != before
    parse_location(store.uri("new/folder")).make_folder()
    assert sorted(store.keys()) == ["d/a.csv", "d/e/b.csv", "dd.csv"]
    file.remove()
    file.remove()
    assert file.kind() is None
    told = f"s3://{BUCKET}/none: expected a folder that contains objects"
    with pytest.raises(SystemRefusedError, match=told):
        list(parse_location(store.uri("none")).listed())
    with pytest.raises(SystemRefusedError, match="expected a bucket of that name, got none"):
        parse_location(store.uri("x").replace(BUCKET, "no-bucket")).make_folder()


def test_file_uris_are_local_paths(folder, tmp_path):
    out = tmp_path / "two words.csv"
    place = f"file://{tmp_path}/two%20words.csv"
    transform_file(f"file://{folder}/m.joblib", f"file://{folder}/in.parquet", place)
    assert os.listdir(tmp_path) == ["two words.csv"]
    assert parse_location(place).kind() == "file"
    assert parse_location(place).size() == out.stat().st_size
    with pytest.raises(UsageError, match="expected file:///folder/name, got the host 'host'"):
        parse_location("file://host/x")


@pytest.mark.parametrize(("place", "match"), [
    ("http://host/x.csv", r"expected a local path or a URI of file://, s3://.* got http://"),
    ("foo://host/x.csv", r"got foo://$"),
    ("hdfs://user@node:8020/x.csv", r"got hdfs://; mount HDFS, or copy the files with `hdfs dfs -get`"),
    ("viewfs://host/x.csv", r"got viewfs://; mount HDFS"),
    ("s3:///x.csv", "expected s3://BUCKET/KEY, got no bucket"),
    ("s3://b/x.csv?colour=red", "expected options that pyarrow knows, got: Unexpected query parameter.*'colour'"),
    ("s3://b/x#1.csv", "expected %23 for a # in a URI"),
    ("s3://b/100%.csv", "expected %25 for a % in a URI"),
])  # fmt: skip
def test_uris_that_are_none(folder, place, match):
    for read, written in ((place, "o.csv"), (str(folder / "in.npy"), place)):
        with pytest.raises(UsageError, match=match):
            transform_file(folder / "m.joblib", read, written)
    with pytest.raises(UsageError, match=match):
        kafeat.load(place)


def test_other_stores_are_handed_to_their_file_systems():
    fs, path = remote.file_system(parse_location("gs://anonymous@bucket/a/b%20c.csv"))
    assert (fs.type_name, path) == ("gcs", "bucket/a/b c.csv")
    assert fs.__reduce__()[1][0]["retry_time_limit"].total_seconds() == 30


# -- failures


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.arrow", "x.npy", "x.joblib"])
def test_what_is_missing(store, folder, name):
    def read(place):
        return kafeat.load(place) if name == "x.joblib" else kafeat.fit(folder / "fit.yaml", place)

    for place in (store.uri(name), store.uri(name).replace(BUCKET, "no-bucket")):
        told = r"^s3://[\w-]*/x\.\w*: expected an object of that name, got none"
        with pytest.raises(SystemRefusedError, match=told):
            read(place)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.npy"])
def test_objects_that_are_damaged(store, folder, name):
    data = (folder / f"in{name[1:]}").read_bytes()
    store.put(name, data[: len(data) // 2] if name != "x.csv" else data[:200] + b"\n1,2\n")
    with pytest.raises(DataError, match=rf"^s3://{BUCKET}/{name}: .*expected"):
        kafeat.fit(folder / "fit.yaml", store.uri(name))


def test_a_missing_bucket_is_told_before_the_work(store, folder):
    place = store.uri("f.csv").replace(BUCKET, "no-bucket")
    told = "s3://no-bucket/f.csv: expected a bucket of that name, got none"
    with pytest.raises(SystemRefusedError, match=told):
        transform_file(folder / "m.joblib", folder / "in.npy", place)
    with pytest.raises(SystemRefusedError, match="expected the name of an object, got that of a folder"):
        check_place(parse_location(store.uri("d/")), True)


@contextmanager
def answering(status: int, body: bytes = b"") -> Iterator[tuple[Store, list[str]]]:
    """A store that always answers this, and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.command)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if self.command == "GET" else b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Store(server.server_address[1]), asked
        server.shutdown()
        thread.join()


def test_credentials_that_are_denied(folder):
    with answering(403) as (denying, _asked):
        told = r"/a.csv: access denied \(.*look at the credentials"
        with pytest.raises(SystemRefusedError, match=told) as caught:
            kafeat.fit(folder / "fit.yaml", denying.uri("a.csv", user="AKIA:hush@"))
        assert "hush" not in str(caught.value)


def test_a_store_that_is_busy_is_asked_again_and_quoted(monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    said = b"<Error><Code>ServiceUnavailable</Code><Message>back at four</Message></Error>"
    with answering(503, said) as (busy, asked):
        place = parse_location(busy.uri("in/a.csv", user="a:b@"))
        for ask, says in [
            (place.kind, r"HTTP status 503 to HeadObject, 2 times \(AWS_MAX_ATTEMPTS\); try again later"),
            (
                lambda: list(place.parent.listed()),
                "SERVICE_UNAVAILABLE during ListObjectsV2 operation: back at four",
            ),
        ]:
            asked.clear()
            with pytest.raises(SystemRefusedError, match=f"the store answered: {says}") as caught:
                ask()
            assert (len(asked), caught.value.retry) == (2, True)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "none")
        told = "AWS_MAX_ATTEMPTS: expected a whole number from 1 to 999, got 'none'"
        with pytest.raises(UsageError, match=told):
            place.kind()


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.slow
def test_an_endpoint_that_is_not_there(folder, tmp_path, monkeypatch, silent):
    if silent:
        monkeypatch.setattr(remote, "_ANSWER_SECONDS", 1)
        monkeypatch.setattr(remote, "_ATTEMPTS", 2)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if silent:
            listener.listen(20)
        place = Store(listener.getsockname()[1]).uri(f"in{silent}.csv")
        both = [(place, str(tmp_path / "o.csv")), (str(folder / "in.npy"), place)]
        for read, written in both[: 1 if silent else 2]:
            began = time.monotonic()
            with pytest.raises(SystemRefusedError, match=r"csv: no connection \(.*look at the network"):
                transform_file(folder / "m.joblib", read, written)
            assert time.monotonic() - began < 15


@pytest.mark.parametrize("boto3", [True, False])
def test_no_clobber(store, folder, monkeypatch, boto3):
    if boto3:  # the store itself refuses, however late the other one comes
        monkeypatch.setattr(atomic_files, "_check_object", lambda *_: None)
    else:
        monkeypatch.setitem(sys.modules, "boto3.exceptions", None)
    transform_file(
        folder / "m.joblib", folder / "in.npy", store.uri("new.csv"), writing=OutputOptions(overwrite=False)
    )
    transform_file(folder / "m.joblib", folder / "in.npy", store.uri("any.csv"))
    assert store.get("new.csv") == store.get("any.csv") != b""
    store.put("f.csv", b"previous")
    place, keep = store.uri("f.csv"), OutputOptions(overwrite=False)
    with pytest.raises(UsageError, match=f"s3://{BUCKET}/f.csv: expected no file of that name, got one"):
        transform_file(folder / "m.joblib", folder / "in.npy", place, writing=keep)
    with (
        pytest.raises(UsageError, match="g.csv: expected no file of that name, got one"),
        atomic(parse_location(store.uri("g.csv")), clobber=False) as output,
    ):
        Path(output.path).write_bytes(b"ours")
        store.put("g.csv", b"of someone who was faster")
    assert store.get("f.csv") == b"previous"
    assert store.get("g.csv") == b"of someone who was faster"


def test_bad_data_and_a_full_spool_leave_the_previous_object(store, folder, tmp_path, monkeypatch):
    store.put("f.csv", b"previous")
    bad = X.copy()
    bad[2500, 3] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(DataError, match="row 2501"):
        transform_file(folder / "m.joblib", tmp_path / "bad.npy", store.uri("f.csv"))
    done = transform_with_files_of(100_000, folder / "m.joblib", folder / "in.npy", store.uri("f.csv"))
    spool = f"written to {os.environ['TMPDIR']} first"
    assert done.stdout.strip() == f"s3://{BUCKET}/f.csv ({spool}): File too large"
    told = r"f.csv: expected room for 1.0 PiB, got .* free in .*TMPDIR"
    with pytest.raises(SystemRefusedError, match=told):
        require_space(parse_location(store.uri("f.csv")), 1 << 50)
    assert (store.keys(), store.get("f.csv"), store.uploads()) == (["f.csv"], b"previous", [])


BIG = 32 << 20


@pytest.fixture(scope="module")
def wide(tmp_path_factory, folder):
    """Rows whose features take some 32 MB: four parts."""
    path = tmp_path_factory.mktemp("wide")
    rows = BIG // (64 * 4)
    np.save(path / "in.npy", RNG.normal(size=(rows, 6)).astype(np.float32))
    return path / "in.npy"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_a_signal_while_it_is_uploaded_leaves_nothing(store, folder, wide, number):
    store.put("f.npy", b"previous")
    with Gate(store.port, held=True) as gate:
        place = store.uri("f.npy", port=gate.port)
        job = Process("transform --model", folder / "m.joblib", wide, place, text=True)
        assert gate.second_part.wait(60)
        job.send_signal(number)
        time.sleep(1.0)  # parts that are on their way are waited for
        assert job.poll() is None
        gate.released.set()
        _, said = job.communicate(timeout=60)
    told = "terminated" if number == signal.SIGTERM else "interrupted"
    assert (job.returncode, said) == (128 + number, f"kafeat: {told}\n")
    assert store.get("f.npy") == b"previous"
    assert store.uploads() == []


@pytest.mark.slow
def test_a_killed_process_leaves_an_upload_that_nobody_sees(store, folder, wide, tmp_path):
    with Gate(store.port, held=True) as gate:
        place = store.uri("f.npy", port=gate.port)
        job = Process("transform --model", folder / "m.joblib", wide, place, stdout=None, stderr=None)
        assert gate.second_part.wait(60)
        job.kill()
        job.wait(20)
        assert store.keys() == []
        assert len(store.uploads()) == 1
        assert len(os.listdir(tmp_path / "spool")) == 1
        # The next run removes the dead draft, and succeeds.
        transform_file(folder / "m.joblib", folder / "in.npy", place)
    assert len(store.get("f.npy")) == 128 + 3000 * 64 * 4


def test_a_part_that_is_refused_leaves_nothing(store):
    with Gate(store.port, broken_part=3) as gate:
        with pytest.raises(SystemRefusedError, match=r"f\.bin: access denied|f\.bin: .*UploadPart"):
            write_bytes(parse_location(store.uri("f.bin", port=gate.port)), bytes(BIG))
        assert any(one.startswith("DELETE") and "uploadId" in one for one in gate.asked)
    assert (store.keys(), store.uploads()) == ([], [])


@pytest.mark.slow
def test_a_spool_that_cannot_be_read_completes_nothing(store, monkeypatch):
    """Also when the stream has lost everyone who knew it, which would complete the object."""
    real = LocalPath.open

    class Torn:
        def __init__(self, place):
            self._file, self._left = real(LocalPath(place)), 2

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def read(self, size):
            self._left -= 1
            if self._left < 0:
                raise OSError(5, "Input/output error")
            return self._file.read(size)

    monkeypatch.setattr(LocalPath, "open", lambda place: Torn(place.path))
    with pytest.raises(SystemRefusedError, match=r"f\.bin: .*Input/output error"):
        write_bytes(parse_location(store.uri("f.bin")), bytes(BIG))
    gc.collect()
    assert (store.keys(), store.uploads()) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("why", ["another upload of that name", "no boto3"])
def test_an_upload_that_cannot_be_called_off_is_told(store, monkeypatch, why):
    if why == "no boto3":
        for name in ("boto3", "boto3.exceptions"):
            monkeypatch.setitem(sys.modules, name, None)
    else:
        store.ask("POST", "/f.bin?uploads", b"")
    told = "may remain until a lifecycle rule of the bucket removes them"
    with Gate(store.port, broken_part=3) as gate, pytest.raises(SystemRefusedError, match=told):
        write_bytes(parse_location(store.uri("f.bin", port=gate.port)), bytes(BIG))
    assert (store.keys(), len(store.uploads())) == ([], 1 if why == "no boto3" else 2)


def test_an_upload_is_aborted_with_the_keys_of_its_file_system(monkeypatch):
    """The store of the other tests accepts any key, so the client itself is looked at."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OTHER")
    place = "s3://AKIA:hush%2Fhush@b/k?endpoint_override=s3.example.com:9000&scheme=https&region=eu-west-1"
    client = upload._client(remote.file_system(parse_location(place))[0])
    keys = client._request_signer._credentials
    assert (keys.access_key, keys.secret_key) == ("AKIA", "hush/hush")
    assert (client.meta.endpoint_url, client.meta.region_name) == ("https://s3.example.com:9000", "eu-west-1")
    of_upload = {"Bucket": "b", "Key": "k", "UploadId": "u"}
    signed = client.generate_presigned_url("abort_multipart_upload", of_upload)
    assert signed.startswith("https://s3.example.com:9000/b/k?")
    others = upload._client(remote.file_system(parse_location("s3://b/k?region=eu-west-1"))[0])
    assert others._request_signer._credentials.access_key == "OTHER"


# -- secrets


def test_nothing_shows_secrets(store, folder, tmp_path, in_process):
    copy_in(store, folder, "in.csv")
    secret = "AKIAUSER:hush%2Fhush@"
    data, model, out = (store.uri(key, user=secret) for key in ("in.csv", "m.joblib", "o.csv"))
    stats = tmp_path / "stats.json"
    calls = [
        (0, "fit", "--config", folder / "fit.yaml", data, model, "-v"),
        (0, "inspect", model),
        (0, "transform", "--model", model, data, out, "--stats", stats, "-v"),
        (5, "transform", "--model", model, data.replace("in.csv", "none.csv"), out),
        (2, "transform", "--model", model, data, data),
        (2, "transform", "--model", model, data, out, data),
        (2, "transform", "--model", model, data, out, "--no-clobber", "--log-format", "json"),
        (4, "inspect", data),
        (2, "transform", "--model", model, data + "&colour=red", out),
        (2, "transform", "--model", model, f"s3://AKIAUSER:hu/sh@{BUCKET}/in.csv", out),
        (6, "verify", "--model", folder / "m.joblib", data, out, "--stats", stats),
        (0, "evaluate", "--model", model, data, "--rows", "200", "--json", "-"),
    ]  # fmt: skip
    for code, *call in calls:
        got, out, said = in_process(*call)
        said += out
        assert got == code, (call, said)
        assert "hush" not in said, said
        assert "sh@" not in said, said
        assert "AKIAUSER" not in said, said
        assert "Traceback" not in said
    for text in (stats.read_bytes(), store.get("m.joblib"), store.get("o.csv")):
        assert b"hush" not in text
        assert b"AKIAUSER" not in text
        assert b"endpoint" not in text


@pytest.mark.parametrize(("text", "clean"), [
    ("s3://a:b@c/d.csv?x=1: no", "s3://c/d.csv: no"), ("s3://a:b/c@d/e: no", "s3://d/e: no"),
    ("'s3://a@b/c' x", "'s3://b/c' x"),
    ("https://n:8020/a@b: no", "https://n:8020/a@b: no"), ("s3://b/a@c", "s3://b/a@c"), ("a:b@c?d=e", "a:b@c?d=e"),
    ("s3://b/k?x=1, s3://u:p@b/l?x=1", "s3://b/k, s3://b/l"),
])  # fmt: skip
def test_without_secrets(text, clean):
    assert without_secrets(text) == clean


@pytest.mark.parametrize("place", [
    "s3://AKIA:hu#sh@b/k.csv", "s3://AKIA:hu/sh@b/k.csv", "s3://AKIA:hu?sh@b/k.csv", "s3://AKIA:hu\nsh@b/k.csv",
    "s3://AKIA:hu sh@b/k.csv", "s3://AKIA:8020/sh@b/k.csv", "s3://AKIA:hush", "s3://b/k.csv?hush", " s3://K:hush@b/k",
    "s3:/AKIA:hush@b/k.csv", "https://AKIA:hush@host/k.csv", "file://AKIA:hush@host/k.csv",
])  # fmt: skip
def test_what_cannot_be_parsed_is_not_spelled(place, folder, tmp_path, in_process):
    names = tmp_path / "list.json"
    names.write_text(json.dumps([place]))
    for call in (
        ("transform", "--model", folder / "m.joblib", place, tmp_path / "o.csv"),
        ("transform", "--model", place, folder / "in.npy", tmp_path / "o.csv"),
        ("transform", "--model", folder / "m.joblib", folder / "in.npy", place, "--log-format", "json"),
        ("transform", "--model", folder / "m.joblib", names, tmp_path / "o"),
    ):
        code, out, said = in_process(*call)
        said += out
        assert code in (2, 5), said
        assert not any(piece in said for piece in ("hu", "sh@", "AKIA", "Traceback")), said


def test_one_place_by_two_names(monkeypatch):
    there = "s3://b/a%20b.csv?region=us-east-1"
    assert parse_location(there).identity == parse_location("s3://k:s@b/a b.csv").identity
    assert parse_location(there).identity != parse_location("s3://b/a b.csv?endpoint_override=other").identity
    with pytest.raises(UsageError, match=r"s3://b/a%20b.csv: expected an output apart from the input"):
        refuse_overlaps(
            [InputPlace("the input", (parse_location(there),))],
            [OutputPlace("an output", parse_location("s3://b/a%20b.csv"))],
        )


def test_local_files_load_no_file_systems(folder, tmp_path):
    code = (
        "import sys\n"
        "import kafeat\n"
        "kafeat.transform(*sys.argv[2:4], model=sys.argv[1])\n"
        "heavy = 'pyarrow.fs', 'pyarrow._fs', 'http.client'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    words = [sys.executable, "-c", code, folder / "m.joblib", folder / "in.npy", tmp_path / "o.csv"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)  # with nothing imported before
    assert done.stdout == "[]\n"


INSIDE, OUTSIDE = ("a", "a/b"), ("a//b", "", "a/../b", "./a")


@pytest.mark.parametrize(("name", "holds"), [*((n, True) for n in INSIDE), *((n, False) for n in OUTSIDE)])
def test_a_folder_holds_names_below_it_alone(tmp_path, name, holds):
    assert Location.holds(parse_location(tmp_path), name) == holds

"""The container and the manifests: linted, validated, and true to the settings they use."""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from lpcfg import cli
from lpcfg.serve.metrics import Metrics
from lpcfg.serve.served import Models
from lpcfg.serve.state import Admission, Cache
from lpcfg.settings import PREFIX, Settings
from tests.needs import lacking

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
OVERLAYS = sorted(path.name for path in (DEPLOY / "overlays").iterdir())
KUBERNETES = "1.32"


def run(*command: str | Path) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = subprocess.run(
        [str(one) for one in command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name: str) -> Path:
    """Find a tool of the development environment."""
    return Path(sys.executable).parent / name


def system(name: str) -> str:
    """Find a tool of the system."""
    found = shutil.which(name)
    if found is None:
        lacking(f"no {name} here: install it to check this too")
    return found


def test_dockerfile_is_clean() -> None:
    run(tool("hadolint"), "Dockerfile")


def test_yaml_is_clean() -> None:
    run(tool("yamllint"), "--strict", "--config-file", DEPLOY / ".yamllint", DEPLOY)


def test_compose_file_is_clean_and_confined() -> None:
    run(tool("compose-lint"), "deploy/compose.yaml")
    (service,) = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].values()
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert not service["user"].startswith("0")


@pytest.fixture(scope="session", params=OVERLAYS)
def manifests(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write all objects of an overlay into a file."""
    text = run(system("kubectl"), "kustomize", DEPLOY / "overlays" / request.param)
    path = tmp_path_factory.mktemp("manifests") / f"{request.param}.yaml"
    path.write_text(text)
    return path


def objects(manifests: Path) -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all(manifests.read_text())}


def test_kubernetes_accepts_the_manifests(manifests: Path) -> None:
    run(tool("kubernetes-validate"), "--strict", "-k", KUBERNETES, manifests)
    kinds = objects(manifests).keys()
    assert kinds >= {
        "Deployment",
        "Service",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "NetworkPolicy",
    }


def test_pods_are_restricted_and_probed(manifests: Path) -> None:
    pod = objects(manifests)["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not pod["automountServiceAccountToken"]
    for probe, path in (
        ("startupProbe", "/v2/health/ready"),
        ("readinessProbe", "/v2/health/ready"),
        ("livenessProbe", "/v2/health/live"),
    ):
        assert container[probe]["httpGet"]["path"] == path
    drain, request = 5, Settings.model_fields["timeout_seconds"].default
    assert pod["terminationGracePeriodSeconds"] > drain + request
    assert container["resources"].keys() == {"requests", "limits"}


def test_all_objects_select_the_same_pods(manifests: Path) -> None:
    found = objects(manifests)
    pods = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        found["Service"]["spec"]["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= pods.items()
    assert found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "lpcfg"
    replicas = found["HorizontalPodAutoscaler"]["spec"]["minReplicas"]
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] < replicas


BATCH = sorted(path.parent.name for path in DEPLOY.glob("batch/*/kustomization.yaml"))


@pytest.mark.parametrize("name", BATCH)
def test_batch_jobs_are_accepted_and_restricted(name: str, tmp_path: Path) -> None:
    path = tmp_path / "batch.yaml"
    path.write_text(run(system("kubectl"), "kustomize", DEPLOY / "batch" / name))
    run(tool("kubernetes-validate"), "--strict", "-k", KUBERNETES, path)
    found = list(yaml.safe_load_all(path.read_text()))
    assert {"Namespace", "NetworkPolicy", "Job"} <= {one["kind"] for one in found}
    pods = [one["spec"]["template"]["spec"] for one in found if "template" in one.get("spec", {})]
    assert len(pods) == (1 if name == "job" else 3)
    for pod in pods:
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"].keys() == {"requests", "limits"}


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("batch/*/*.yaml")), ids=lambda p: p.stem)
def test_batch_commands_have_the_options_they_name(path: Path) -> None:
    """The commands in the manifests are parsed as lpcfg and dask would; none is run."""
    for one in yaml.safe_load_all(path.read_text()):
        pod = one.get("spec", {}).get("template", {}).get("spec")
        if pod is None:
            continue
        _, program, *arguments = pod["containers"][0]["command"]
        if program == "lpcfg":
            command = get_command(cli.app).commands[arguments[0]]  # type: ignore[attr-defined]
            known = {option for param in command.params for option in param.opts}
        else:
            known = set(re.findall(r"--[a-z-]+", run(tool("dask"), arguments[0], "--help")))
        assert {word for word in arguments if word.startswith("--")} <= known


def test_settings_named_here_are_settings() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    files = [ROOT / "Dockerfile", ROOT / "docs" / "deployment.md"]
    files += [path for path in DEPLOY.rglob("*") if path.is_file()]
    named = {
        name for path in files for name in re.findall(r"LPCFG_[A-Z_]+", path.read_text("utf-8"))
    }
    assert named
    assert named <= known


def test_alerts_parse_and_fire_when_they_should() -> None:
    promtool = system("promtool")
    run(promtool, "check", "rules", DEPLOY / "prometheus-rules.yaml")
    run(promtool, "test", "rules", DEPLOY / "prometheus-rules-test.yaml")


def test_the_operator_gets_the_same_alerts() -> None:
    """After a change, make alerts.yaml anew: its own first lines, then the rules indented."""
    rules = (DEPLOY / "prometheus-rules.yaml").read_text()
    alerts = (DEPLOY / "overlays" / "production" / "alerts.yaml").read_text()
    head, _, below = alerts.partition("\nspec:\n")
    assert below == textwrap.indent(rules, "  ")
    assert yaml.safe_load(head)["kind"] == "PrometheusRule"


KSERVE = {
    "ServingRuntime": {
        "supportedModelFormats": list,
        "protocolVersions": list,
        "multiModel": bool,
        "containers": list,
        "volumes": list,
    },
    "InferenceService": {"predictor": dict},
}
"""The fields used of `spec`, as serving.kserve.io has them."""
PREDICTOR = {"minReplicas", "maxReplicas", "terminationGracePeriodSeconds"}
PREDICTOR |= {"automountServiceAccountToken", "model"}
PREDICTED = {"modelFormat", "protocolVersion", "runtime", "storageUri"}


def kserve(name: str) -> dict[str, Any]:
    """Read a manifest of KServe's kinds."""
    (found,) = yaml.safe_load_all((DEPLOY / "kserve" / f"{name}.yaml").read_text())
    assert isinstance(found, dict)
    return found


def test_kserve_manifests_name_existing_fields_and_each_other() -> None:
    runtime, service = kserve("serving-runtime"), kserve("inference-service")
    assert runtime["apiVersion"] == "serving.kserve.io/v1alpha1"
    assert service["apiVersion"] == "serving.kserve.io/v1beta1"
    for one in (runtime, service):
        known = KSERVE[one["kind"]]
        assert one["spec"].keys() <= known.keys()
        assert all(isinstance(value, known[field]) for field, value in one["spec"].items())
    predictor = service["spec"]["predictor"]
    assert (predictor.keys(), predictor["model"].keys()) == (PREDICTOR, PREDICTED)
    model, formats = predictor["model"], runtime["spec"]["supportedModelFormats"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    assert model["modelFormat"] in [{"name": f["name"], "version": f["version"]} for f in formats]
    assert predictor["terminationGracePeriodSeconds"] > 5 + 30


def test_pods_of_kserve_are_valid_and_start_the_service(tmp_path: Path) -> None:
    spec = kserve("serving-runtime")["spec"]
    pod = {"containers": spec["containers"], "volumes": spec["volumes"]}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lpcfg"}, "spec": pod}
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(whole))
    run(tool("kubernetes-validate"), "--strict", "-k", KUBERNETES, path)
    (container,) = spec["containers"]
    assert container["name"] == "kserve-container"  # the one that KServe completes
    context = container["securityContext"]
    assert context["readOnlyRootFilesystem"]
    assert context["runAsNonRoot"]
    assert not context["allowPrivilegeEscalation"]
    (port,) = {one["containerPort"] for one in container["ports"]}
    # the storage initializer puts storageUri at /mnt/models, which is then the store
    assert container["args"] == ["--model={{.Name}}", "--store=/mnt/models", f"--port={port}"]
    known = {
        name for option in get_command(cli.app).commands["serve"].params for name in option.opts
    }
    assert {argument.partition("=")[0] for argument in container["args"]} <= known


def test_the_volume_of_models_is_mounted_where_the_service_looks() -> None:
    text = run(system("kubectl"), "kustomize", DEPLOY / "overlays" / "models")
    found = {one["kind"]: one for one in yaml.safe_load_all(text)}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    mounts = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert mounts["models"] == found["ConfigMap"]["data"]["LPCFG_MODEL_STORE"]
    claim = volumes["models"]["persistentVolumeClaim"]["claimName"]
    assert claim == found["PersistentVolumeClaim"]["metadata"]["name"]
    assert found["ConfigMap"]["data"]["LPCFG_API_KEYS_FILE"]  # what production has stays


def test_the_package_of_the_image_has_its_models(tmp_path: Path) -> None:
    """A volume of models may lack `en`, which is then taken from here."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (link,) = re.findall(r"ln -s \S+ \S+", text)
    (models,) = re.findall(r"^COPY model_store (\S+)$", text, re.M)
    package = tmp_path / "opt/lpcfg/lib/python3.11/site-packages/lpcfg"
    (package / "store").mkdir(parents=True)
    shutil.copy(ROOT / "service" / "lpcfg" / "store" / "places.py", package / "store")
    Path(f"{tmp_path}{models}").mkdir()
    run("sh", "-c", link.replace("/opt/lpcfg", f"{tmp_path}/opt/lpcfg"))
    found = "from store.places import package_store; print(package_store().resolve())"
    assert run("env", f"PYTHONPATH={package}", sys.executable, "-c", found).strip() == (
        f"{tmp_path}{models}"
    )


def test_the_volume_of_jobs_is_mounted_where_the_service_keeps_them() -> None:
    text = run(system("kubectl"), "kustomize", DEPLOY / "overlays" / "jobs")
    found = {one["kind"]: one for one in yaml.safe_load_all(text)}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    mounts = {one["name"]: one for one in pod["containers"][0]["volumeMounts"]}
    assert mounts["jobs"]["mountPath"] == found["ConfigMap"]["data"]["LPCFG_JOBS_DIR"]
    assert not mounts["jobs"].get("readOnly", False)


def test_the_ingress_leads_to_the_service_over_tls() -> None:
    text = run(system("kubectl"), "kustomize", DEPLOY / "overlays" / "tls")
    found = {one["kind"]: one for one in yaml.safe_load_all(text)}
    ingress, settings = found["Ingress"]["spec"], found["ConfigMap"]["data"]
    (rule,) = ingress["rules"]
    assert ingress["tls"][0]["hosts"] == [rule["host"]]
    (path,) = rule["http"]["paths"]
    backend = path["backend"]["service"]
    assert backend["name"] == found["Service"]["metadata"]["name"]
    assert backend["port"]["name"] == found["Service"]["spec"]["ports"][0]["name"]
    assert Settings(proxies=settings["LPCFG_PROXIES"]).proxies


def test_the_list_of_packages_is_complete(tmp_path: Path) -> None:
    """Every package that an installation pins is in the list, under its purl."""
    path = tmp_path / "sbom.cdx.json"
    run(sys.executable, DEPLOY / "sbom.py", path)
    told = json.loads(path.read_text())
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.5")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", told["serialNumber"])
    listed = {one["purl"] for one in told["components"]}
    assert len(listed) == len(told["components"])
    named = {one.partition("@")[0] for one in listed}
    pinned = re.findall(
        r"^([a-z0-9.-]+)==(?:[^ ]+)( ;)?", (ROOT / "requirements.lock").read_text(), re.M
    )
    wanted = {f"pkg:pypi/{name.replace('.', '-')}" for name, marker in pinned if not marker}
    assert len(wanted) > 20
    assert wanted <= named
    assert told["metadata"]["component"]["name"] == "lpcfg"
    again = tmp_path / "again.json"
    run(sys.executable, DEPLOY / "sbom.py", again)
    assert again.read_bytes() == path.read_bytes()


def test_the_image_says_what_it_is() -> None:
    text = (ROOT / "Dockerfile").read_text()
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", text))
    wanted = {"title", "description", "version", "revision", "created", "licenses", "source"}
    assert labels == wanted
    for argument in ("VERSION", "REVISION", "CREATED", "SOURCE", "KERNELS_FOR"):
        assert f"\nARG {argument}" in text
    assert "sbom.cdx.json" in text


def test_probes_are_no_requests_that_alerts_count() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text())
    named = {
        rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"][1:]
    }
    counted = re.findall(r"lpcfg_requests_total\{([^}]*)\}", named["LpcfgOverloaded"])
    assert len(counted) == named["LpcfgOverloaded"].count("lpcfg_requests_total") == 2
    assert all('endpoint=~"/v1/.*"' in one for one in counted)
    assert "lpcfg_ready" in named["LpcfgDown"]
    assert "lpcfg_ready" in named["LpcfgNotReady"]


def test_alerts_and_dashboard_use_existing_metrics() -> None:
    metrics = Metrics(Admission(1, 1, 1.0), Cache(0))
    text = metrics.text(Models((), str(ROOT / "tests"))).decode()
    exposed = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    exposed |= {f"{name}_bucket" for name in exposed}
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    used = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text())
    used += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    named = {name for text in used for name in re.findall(r"\b(?:lpcfg|process)_\w+\b(?!:)", text)}
    assert named
    assert named <= exposed

"""Renders a chart with Helm's own code and holds the manifests against Kubernetes' schemas.

    python3 render.py <chart> <Kubernetes version> < values.json

One JSON object: `manifests`, or `refused` with Helm's own words. A manifest that Kubernetes would not take ends it with an error.
"""
import json
import sys

import kubernetes_validate
import yaml
from helm_python import Chart, HelmError, lint


def main(folder, version):
    values = json.load(sys.stdin)
    try:
        with Chart.load(folder) as chart:
            chart.validate_schema(values)
            rendered = chart.render(values=values, name="release", namespace="default")
    except HelmError as error:
        return {"refused": str(error)}
    manifests = [one for text in rendered.values() for one in yaml.safe_load_all(text) if one]
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)
    return {"manifests": manifests, "lint": lint(folder, values=values)}


print(json.dumps(main(*sys.argv[1:])))

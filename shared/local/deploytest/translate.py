"""Turns the template that `sam build` wrote into CloudFormation, as the SAM transform does in the cloud.

translate.py TEMPLATE TARGET: TARGET gets JSON. Needs aws-sam-translator, which comes with the SAM CLI.
"""

import json
import os
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # the translator looks up the partition by it

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies:
    """The translator asks here for managed policies that a template names without their ARN. Ours names none."""

    def load(self):
        return {}


def main(source, target):
    with open(source, encoding="utf-8") as f:
        template = yaml_parse(f.read())
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            # What `sam deploy` does when it has uploaded the artifacts.
            resource["Properties"]["CodeUri"] = "s3://artifacts/" + name + ".zip"
    with open(target, "w", encoding="utf-8") as f:
        json.dump(transform(template, {}, NoManagedPolicies()), f, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])

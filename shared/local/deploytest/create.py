"""Creates CloudFormation stacks on an emulator and writes down what became of them.

create.py ENDPOINT TEMPLATE PLAN TARGET: PLAN is JSON, [{"stack": name, "parameters": {name: value}}, ...]; TARGET gets a
JSON list in the same order. Everything in it was read back through the emulator's APIs. Needs boto3, which comes with
the SAM CLI.
"""

import io
import json
import sys
import time
import zipfile

import boto3
from botocore.config import Config

PATIENCE = 60  # seconds for one stack


def main(endpoint, template, plan, target):
    def client(service):
        return boto3.client(
            service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test",
            config=Config(retries={"max_attempts": 0}, read_timeout=60, s3={"addressing_style": "path"}),
        )

    aws = {name: client(name) for name in ("cloudformation", "lambda", "s3", "sqs", "dynamodb")}
    with open(template, encoding="utf-8") as f:
        body = f.read()
    upload(aws["s3"], body)
    with open(plan, encoding="utf-8") as f:
        stacks = json.load(f)
    made = [create(aws, endpoint, stack["stack"], stack["parameters"]) for stack in stacks]
    with open(target, "w", encoding="utf-8") as f:
        json.dump(made, f, indent=1, default=str)


def upload(s3, body):
    """Puts the template, too large to be sent along, and an artifact for each function where the template looks for it.
    Nothing on the emulator is run, so that the artifacts are only stand-ins."""
    artifact = io.BytesIO()
    with zipfile.ZipFile(artifact, "w") as z:
        z.writestr("bootstrap", "")
    s3.create_bucket(Bucket="artifacts")
    s3.put_object(Bucket="artifacts", Key="template.json", Body=body)
    for resource in json.loads(body)["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function":
            s3.put_object(Bucket="artifacts", Key=resource["Properties"]["Code"]["S3Key"], Body=artifact.getvalue())


def create(aws, endpoint, name, parameters):
    cloudformation = aws["cloudformation"]
    cloudformation.create_stack(
        StackName=name, TemplateURL=endpoint + "/artifacts/template.json", Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
    )
    deadline = time.time() + PATIENCE
    while True:
        stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        if not stack["StackStatus"].endswith("_IN_PROGRESS") or time.time() > deadline:
            break
        time.sleep(0.1)
    resources = []
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=name):
        resources += page["StackResourceSummaries"]
    made = {
        "stack": name, "status": stack["StackStatus"], "reason": stack.get("StackStatusReason", ""),
        "resources": {
            r["LogicalResourceId"]: {"id": r["PhysicalResourceId"], "type": r["ResourceType"], "status": r["ResourceStatus"]}
            for r in resources
        },
        "outputs": {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])},
    }
    if stack["StackStatus"] == "CREATE_COMPLETE":
        made.update(read(aws, made["resources"]))
    return made


def read(aws, resources):
    """What the services themselves say."""
    found = {"environment": {}, "mappings": {}, "policies": {}, "notifications": {}, "queues": {}, "tables": {}}
    for name, resource in resources.items():
        id = resource["id"]
        match resource["type"]:
            case "AWS::Lambda::Function":
                function = aws["lambda"].get_function_configuration(FunctionName=id)
                found["environment"][name] = function.get("Environment", {}).get("Variables", {})
            case "AWS::Lambda::EventSourceMapping":
                mapping = aws["lambda"].get_event_source_mapping(UUID=id)
                found["mappings"][name] = {k: mapping.get(k) for k in ("EventSourceArn", "FunctionArn", "FunctionResponseTypes")}
            case "AWS::S3::Bucket":
                found["policies"][name] = json.loads(aws["s3"].get_bucket_policy(Bucket=id)["Policy"])
                notification = aws["s3"].get_bucket_notification_configuration(Bucket=id)
                found["notifications"][name] = [
                    {
                        "queue": q["QueueArn"], "events": q["Events"],
                        "filter": {r["Name"].lower(): r["Value"] for r in q.get("Filter", {}).get("Key", {}).get("FilterRules", [])},
                    }
                    for q in notification.get("QueueConfigurations", [])
                ]
            case "AWS::SQS::Queue":
                found["queues"][name] = aws["sqs"].get_queue_attributes(QueueUrl=id, AttributeNames=["All"])["Attributes"]
            case "AWS::DynamoDB::Table":
                found["tables"][name] = aws["dynamodb"].describe_table(TableName=id)["Table"]
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])

// The same work as reserve-upload, as one would write it with the AWS SDK for JavaScript, bundled and minified: check the
// key, reserve in one transaction, presign the upload. Below it, what Lambda's own runtime for Node.js does: poll for
// events over a connection that is kept.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import http from "node:http";
import { DynamoDBClient, GetItemCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { AssumeRoleCommand, STSClient } from "@aws-sdk/client-sts";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const table = process.env.TABLE_NAME;
const bucket = process.env.BUCKET_NAME;
const urlSeconds = Number(process.env.UPLOAD_URL_SECONDS);
const fileSeconds = Number(process.env.FILE_TTL_SECONDS);
const maxBytes = Number(process.env.ACCOUNT_MAX_LIVE_BYTES);
const maxReservations = Number(process.env.ACTOR_MAX_RESERVATIONS);

const dynamo = new DynamoDBClient({});
const sts = new STSClient({});
const s3 = new S3Client({
  requestChecksumCalculation: "WHEN_REQUIRED",
  // The SDK calls this when it first needs credentials, and again before they end.
  credentials: async () => {
    const { Credentials: c } = await sts.send(
      new AssumeRoleCommand({ RoleArn: process.env.PRESIGN_ROLE_ARN, RoleSessionName: process.env.AWS_LAMBDA_FUNCTION_NAME, DurationSeconds: 3600 }),
    );
    return { accessKeyId: c.AccessKeyId, secretAccessKey: c.SecretAccessKey, sessionToken: c.SessionToken, expiration: c.Expiration };
  },
});

const answer = (statusCode, body) => ({ statusCode, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

async function caller(authorization) {
  const [, id, secret] = /^Bearer ck_([a-z0-9]{16})_([a-z0-9]{40})$/.exec(authorization ?? "") ?? [];
  if (!id) return null;
  const { Item: key } = await dynamo.send(
    new GetItemCommand({ TableName: table, Key: { pk: { S: `key#${id}` }, sk: { S: "key" } }, ConsistentRead: true }),
  );
  if (!key || key.revoked_at) return null;
  if (!timingSafeEqual(createHash("sha256").update(secret).digest(), key.secret_hash.B)) return null;
  if (!key.scopes.L.some((s) => s.S === "files:write")) return null;
  return { account: key.account.S, actor: key.actor.S };
}

async function handler(event) {
  const who = await caller(event.headers.authorization);
  if (!who) return answer(401, { message: "no valid key" });
  let draft;
  try {
    draft = JSON.parse(event.body);
  } catch {
    return answer(400, { message: "the body must be JSON" });
  }
  if (!draft.filename || !draft.content_type || !(draft.size_bytes > 0)) {
    return answer(400, { message: "filename, content_type and size_bytes are required" });
  }

  const now = Math.floor(Date.now() / 1000);
  const id = "f_" + randomBytes(13).toString("hex");
  const expires = now + fileSeconds;
  const size = String(draft.size_bytes);
  await dynamo.send(
    new TransactWriteItemsCommand({
      ClientRequestToken: randomBytes(16).toString("hex"),
      TransactItems: [
        {
          Put: {
            TableName: table,
            ConditionExpression: "attribute_not_exists(pk)",
            Item: {
              pk: { S: id }, sk: { S: "file" }, account: { S: who.account }, actor: { S: who.actor }, state: { S: "reserved" },
              filename: { S: draft.filename }, content_type: { S: draft.content_type }, size: { N: size },
              metadata: { M: Object.fromEntries(Object.entries(draft.metadata ?? {}).map(([k, v]) => [k, { S: v }])) },
              list_pk: { S: `files#${who.account}` }, list_sk: { S: `${now}#${id}` },
              created_at: { N: String(now) }, expires_at: { N: String(expires) }, ttl: { N: String(expires + 172800) },
            },
          },
        },
        {
          Put: {
            TableName: table,
            Item: {
              pk: { S: `hold#${who.account}` }, sk: { S: `${expires}#${id}` }, due_pk: { S: String(Math.floor(expires / 60)) },
              bytes: { N: size }, actor: { S: who.actor },
            },
          },
        },
        {
          Update: {
            TableName: table,
            Key: { pk: { S: `account#${who.account}` }, sk: { S: "usage" } },
            UpdateExpression: "ADD #bytes :n, files :one",
            ConditionExpression: "attribute_not_exists(#bytes) OR #bytes <= :room",
            ExpressionAttributeNames: { "#bytes": "bytes" },
            ExpressionAttributeValues: { ":n": { N: size }, ":one": { N: "1" }, ":room": { N: String(maxBytes - draft.size_bytes) } },
          },
        },
        {
          Update: {
            TableName: table,
            Key: { pk: { S: `account#${who.account}` }, sk: { S: `actor#${who.actor}` } },
            UpdateExpression: "ADD reservations :one",
            ConditionExpression: "attribute_not_exists(reservations) OR reservations < :max",
            ExpressionAttributeValues: { ":one": { N: "1" }, ":max": { N: String(maxReservations) } },
          },
        },
      ],
    }),
  );

  const headers = { "Content-Type": draft.content_type, "Content-Length": size, "If-None-Match": "*" };
  const url = await getSignedUrl(
    s3,
    new PutObjectCommand({ Bucket: bucket, Key: `staging/${id}`, ContentType: draft.content_type, ContentLength: draft.size_bytes, IfNoneMatch: "*" }),
    { expiresIn: urlSeconds, signableHeaders: new Set(["content-type", "content-length", "if-none-match", "host"]) },
  );
  return answer(201, { id, state: "reserved", upload: { method: "PUT", url, headers } });
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const api = new URL(`http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/`);

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(new URL(path, api), { agent, method }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => resolve({ headers: response.headers, body: Buffer.concat(parts).toString() }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function main() {
  if (process.env.SESSION === "early") await s3.config.credentials();
  for (;;) {
    const next = await call("GET", "invocation/next");
    const id = next.headers["lambda-runtime-aws-request-id"];
    try {
      await call("POST", `invocation/${id}/response`, JSON.stringify(await handler(JSON.parse(next.body))));
    } catch (e) {
      await call("POST", `invocation/${id}/error`, JSON.stringify({ errorType: e.name, errorMessage: e.message }));
    }
  }
}

main();

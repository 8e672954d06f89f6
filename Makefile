# Claimcheck. `make help` lists the targets. Go alone is enough for all but `lint` and `deploy`, which fetch their
# tools (pinned below) into .venv and .local/tools and need Python 3.10 or newer.

STATICCHECK_VERSION := v0.8.2
GOVULNCHECK_VERSION := v1.9.0
CFN_LINT_VERSION    := 1.58.0
SAM_CLI_VERSION     := 1.170.0
MINISTACK_VERSION   := 1.5.33

# Where the local stack keeps its data and its port; 0 picks a free one. PARAMS are template parameters.
DATA   ?= .local
PORT   ?= 0
PARAMS ?=
# More for go test, such as TESTFLAGS='-v -run Reserve'.
TESTFLAGS ?=
# Which part of samconfig.toml deploys.
ENV    ?= default

# One compiled file per function, the same however it is built: no host paths, no version control stamp. The tags leave out
# what no function uses: the RPC of the retired Go runtime, and HTTP/2, which neither Lambda nor the AWS services speak.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags lambda.norpc,nethttpomithttp2 -ldflags='-s -w'
LAMBDA   := GOOS=linux GOARCH=arm64

MODULES := . shared/local
LOCAL    := .local/bin/claimcheck-local
TOOLS    := .local/tools
SAM      := .venv/bin/sam
EMULATOR := .venv/emulator/$(MINISTACK_VERSION)

BENCH   := .local/bin/bench
# How often bench starts each program, whether it needs its Node.js peer (auto, required or off), and how many seconds load
# keeps up each number of callers.
RUNS    ?= 40
NODE    ?= auto
PERIOD  ?= 10

# Recipes read these from the environment, so no value is ever parsed as shell.
export ACCOUNT ACTOR SCOPES ROLE STACK DATA PORT PARAMS URL KEY RUNS NODE PERIOD
export SAM_CLI_TELEMETRY := 0

# $(call need,COMMAND,WHAT TO DO): stops with one clear line when a command is missing.
need = command -v $(1) >/dev/null || { echo "make $@: $(1) is missing: $(2)" >&2; exit 1; }
need-go = $(call need,go,install Go 1.26 or newer from https://go.dev/dl)

.DEFAULT_GOAL := help
.PHONY: help run key test race torture bench load bench-sweep fuzz-dynamo build deploy deploy-test smoke lint fmt vet staticcheck vuln lint-template clean distclean $(LOCAL) $(BENCH)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo '  make run PORT=8080 DATA=/tmp/claimcheck PARAMS="ReservationTTLSeconds=5 LinkTTLSeconds=60"'
	@echo '  make key ACCOUNT=acme ACTOR=ada ROLE=owner              (running local stack; DATA=… as for run)'
	@echo '  make key ACCOUNT=acme ACTOR=bot SCOPES=files:read,files:write STACK=claimcheck'
	@echo '  make deploy ENV=prod'
	@echo '  make smoke STACK=claimcheck'

# ---- On this machine

run: $(LOCAL) ## Run the whole stack on this machine (DATA, PORT, PARAMS)
	@exec $(LOCAL) run -root . -data "$$DATA" -port "$$PORT" -params "$$PARAMS"

# Always asks Go, which knows best whether anything changed. Speaks on stderr: stdout belongs to `run` and `key`.
$(LOCAL):
	@$(need-go)
	@[ -x $@ ] || echo "Building the local stack; the first time takes about a minute …" >&2
	@cd shared/local && go build -o "$(CURDIR)/$@" . >&2

ifeq ($(STACK),)
key: $(LOCAL)
endif
key: ## Print a new key (ACCOUNT, ACTOR, ROLE or SCOPES; STACK for a deployed one)
	@set -eu; \
	if [ -z "$$ACCOUNT" ] || [ -z "$$ACTOR" ] || [ -z "$$SCOPES$$ROLE" ]; then \
	  echo 'make key: say ACCOUNT=… ACTOR=… and ROLE=… (viewer, member, builder, admin, owner) or SCOPES=files:read,…' >&2; exit 2; \
	fi; \
	if [ -n "$$SCOPES" ] && [ -n "$$ROLE" ]; then echo 'make key: say ROLE=… or SCOPES=…, not both' >&2; exit 2; fi; \
	if [ -z "$$STACK" ]; then \
	  if [ -n "$$ROLE" ]; then set -- -role "$$ROLE"; else set -- -scopes "$$SCOPES"; fi; \
	  exec $(LOCAL) key -data "$$DATA" -account "$$ACCOUNT" -actor "$$ACTOR" "$$@"; \
	fi; \
	$(call need,aws,a key of a deployed stack needs the AWS CLI: https://aws.amazon.com/cli); \
	function=$$(aws cloudformation describe-stacks --stack-name "$$STACK" --output text \
	  --query "Stacks[0].Outputs[?OutputKey=='IssueKeyFunctionName'].OutputValue"); \
	if [ -z "$$function" ] || [ "$$function" = None ]; then \
	  echo "make key: stack $$STACK has no output IssueKeyFunctionName: is it a Claimcheck stack in this region?" >&2; exit 1; \
	fi; \
	quote() { printf '"%s"' "$$(printf '%s' "$$1" | sed 's/[\\"]/\\&/g')"; }; \
	umask 077; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; trap 'exit 1' HUP INT TERM; \
	{ printf '{"account":%s,"actor":%s,' "$$(quote "$$ACCOUNT")" "$$(quote "$$ACTOR")"; \
	  if [ -n "$$ROLE" ]; then printf '"role":%s}' "$$(quote "$$ROLE")"; \
	  else printf '"scopes":[%s]}' "$$(for s in $$(printf '%s' "$$SCOPES" | tr , ' '); do quote "$$s"; printf ,; done | sed 's/,$$//')"; fi; \
	} > "$$dir/event.json"; \
	aws lambda invoke --function-name "$$function" --payload "fileb://$$dir/event.json" "$$dir/answer.json" >/dev/null; \
	key=$$(sed -n 's/.*"key" *: *"\(ck_[a-z0-9_]*\)".*/\1/p' "$$dir/answer.json"); \
	if [ -z "$$key" ]; then echo "make key: $$function answered:" >&2; cat "$$dir/answer.json" >&2; echo >&2; exit 1; fi; \
	printf '%s\n' "$$key"

test: ## Run all tests of both modules
	@$(need-go)
	go test $(TESTFLAGS) ./...
	cd shared/local && go test -count=1 $(TESTFLAGS) ./...

race: ## Run all tests with the race detector (needs a C compiler)
	@$(need-go)
	CGO_ENABLED=1 go test -race $(TESTFLAGS) ./...
	cd shared/local && CGO_ENABLED=1 go test -race -count=1 $(TESTFLAGS) ./...

# Seeds run one after another on stacks of their own; a failing one is named with the command that repeats it.
SEEDS ?= 10
STEPS ?= 20000
SEED  ?= 0
torture: ## Many callers on the local stack under faults (SEEDS, STEPS, or one SEED)
	@$(need-go)
	cd shared/local && go run ./torture -root ../.. -seeds "$(SEEDS)" -steps "$(STEPS)" -seed "$(SEED)"

# Peak memory of the two functions for a tenth of the files and for all of them. Linux only.
FILES ?= 100000
bench-sweep: ## Measure sweeping and reconciling with many files (FILES)
	@$(need-go)
	cd shared/local && go run ./torture -root ../.. -many "$(FILES)"

fuzz-dynamo: ## Compare the local DynamoDB with dynalite (needs Node)
	@$(need-go)
	cd shared/local && go run ./dynamo/difftest -cache "$(CURDIR)/.local/difftest"

# ---- Figures

bench: $(BENCH) ## Start, requests, verification and cost, beside what one would write instead (RUNS, NODE=required or off)
	@$(BENCH) speed -root . -out .local/bench -runs "$$RUNS" -node "$$NODE"

load: $(BENCH) ## Hand-offs per second and latencies on this machine, with 1, 8 and 32 callers (PERIOD)
	@$(BENCH) load -root . -out .local/bench -seconds "$$PERIOD"

$(BENCH):
	@$(need-go)
	@[ -x $@ ] || echo "Building the benchmark; the first time takes about a minute …" >&2
	@cd shared/local && go build -o "$(CURDIR)/$@" ./bench >&2

# ---- For AWS

build: ## Compile every function as shipped, into .local/build/NAME/bootstrap
	@$(need-go)
	@rm -rf .local/build && mkdir -p .local/build/all
	$(LAMBDA) $(GO_BUILD) -o .local/build/all/ ./functions/...
	@cd .local/build && for f in all/*; do n=$${f#all/}; mkdir "$$n" && mv "$$f" "$$n/bootstrap"; done && rmdir all

# `sam build` calls this once per function, in this folder (ContextPath and WorkingDirectory in template.yaml), so no
# source is copied and Go decides what is stale: ReserveUploadFunction is functions/reserve-upload.
build-%Function:
	@folder=functions/$$(printf '%s' '$*' | sed -e 's/[A-Z]/-&/g' -e 's/^-//' | tr '[:upper:]' '[:lower:]'); \
	$(LAMBDA) $(GO_BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" "./$$folder"

deploy: $(SAM) ## sam build && sam deploy (ENV=prod for that part of samconfig.toml)
	@$(need-go)
	$(SAM) build --config-env $(ENV)
	$(SAM) deploy --config-env $(ENV)

deploy-test: $(SAM) $(EMULATOR) ## Prove without an account that it deploys: sam build, CloudFormation, roles
	@$(need-go)
	@$(call need,git,install git)
	@mkdir -p .local/bin && cd shared/local && go build -o "$(CURDIR)/.local/bin/deploytest" ./deploytest
	@.local/bin/deploytest

# A deployed stack without KEY gets a key of its own, which ends with it.
smoke: ## Say which facts hold where it runs (STACK; or URL and KEY; or DATA for the local stack)
	@$(need-go)
	@mkdir -p .local/bin && cd shared/local && go build -o "$(CURDIR)/.local/bin/smoke" ./smoke
	@set -eu; \
	if [ -n "$$URL" ]; then exec .local/bin/smoke -url "$$URL"; fi; \
	if [ -z "$$STACK" ]; then exec .local/bin/smoke -data "$$DATA"; fi; \
	if [ -n "$$KEY" ]; then exec .local/bin/smoke -stack "$$STACK"; fi; \
	KEY=$$($(MAKE) -s --no-print-directory key ACCOUNT=smoke ACTOR=smoke ROLE=owner); export KEY; \
	exec .local/bin/smoke -stack "$$STACK" -revoke

# ---- Checks

lint: fmt vet staticcheck vuln lint-template ## gofmt, vet, staticcheck, govulncheck, cfn-lint, sam validate

fmt:
	@bad=$$(gofmt -l $(wildcard functions shared)); \
	[ -z "$$bad" ] || { echo "make fmt: not formatted, run gofmt -w on:" >&2; echo "$$bad" >&2; exit 1; }

vet:
	@for m in $(MODULES); do echo "vet $$m"; (cd $$m && go vet ./...) || exit 1; done

staticcheck: $(TOOLS)/staticcheck-$(STATICCHECK_VERSION)
	@for m in $(MODULES); do echo "staticcheck $$m"; (cd $$m && "$(CURDIR)/$<" ./...) || exit 1; done

# A vulnerability found fails. A database out of reach is said loudly and does not: it says nothing about the code.
vuln: $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
	@for m in $(MODULES); do \
	  echo "govulncheck $$m"; code=0; \
	  out=$$(cd $$m && "$(CURDIR)/$<" ./... 2>&1) || code=$$?; \
	  case "$$code $$out" in \
	    "0 "*) ;; \
	    "1 "*"fetching vulnerabilities:"*) \
	      echo "make vuln: NOT CHECKED: the vulnerability database (https://vuln.go.dev, or GOVULNDB) cannot be reached from here" >&2; exit 0;; \
	    *) printf '%s\n' "$$out" >&2; exit 1;; \
	  esac; \
	done

lint-template: $(SAM)
	.venv/bin/cfn-lint template.yaml
	@# Any region will do: validation is local, but the CLI wants one.
	AWS_DEFAULT_REGION=$${AWS_DEFAULT_REGION:-us-east-1} $(SAM) validate --lint

# ---- Tools

$(TOOLS)/staticcheck-$(STATICCHECK_VERSION): PACKAGE = honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
$(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION): PACKAGE = golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
$(TOOLS)/%:
	@$(need-go)
	@mkdir -p $(TOOLS)
	GOBIN="$(CURDIR)/$(TOOLS)" go install $(PACKAGE)
	@mv $(TOOLS)/$(firstword $(subst -, ,$*)) $@

# Made anew when a pinned version changes; the stamp carries both.
STAMP := .venv/$(CFN_LINT_VERSION)-$(SAM_CLI_VERSION)
$(SAM): $(STAMP) ;
$(STAMP):
	@$(call need,python3,cfn-lint and the SAM CLI need Python 3.10 or newer (package python3))
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "make: cfn-lint and the SAM CLI need Python 3.10 or newer, this is $$(python3 --version)" >&2; exit 1; }
	@rm -rf .venv
	@python3 -m venv .venv || { rm -rf .venv; echo "make: python3 cannot make a virtual environment: install the package python3-venv" >&2; exit 1; }
	.venv/bin/pip install --quiet --disable-pip-version-check cfn-lint==$(CFN_LINT_VERSION) aws-sam-cli==$(SAM_CLI_VERSION)
	@touch $@

# The CloudFormation emulator of deploy-test; why this one stands in shared/local/deploytest. Apart from the SAM CLI, which
# wants another botocore.
$(EMULATOR): $(STAMP)
	@rm -rf .venv/emulator && python3 -m venv .venv/emulator
	.venv/emulator/bin/pip install --quiet --disable-pip-version-check ministack==$(MINISTACK_VERSION)
	@touch $@

clean: ## Remove everything built; data and .venv stay
	rm -rf .aws-sam .local/bin .local/build .local/tools .local/bench

distclean: clean ## Remove also .venv and the data of the local stack in .local
	rm -rf .venv .local

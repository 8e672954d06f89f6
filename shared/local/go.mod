module claimcheck.dev/claimcheck/shared/local

go 1.26.0

module claimcheck.dev/claimcheck

go 1.26.0

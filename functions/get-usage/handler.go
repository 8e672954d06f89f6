package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

type usage struct {
	Account accountUsage `json:"account"`
	Actor   actorUsage   `json:"actor"`
}

type accountUsage struct {
	LiveBytes    int64 `json:"live_bytes"`
	MaxLiveBytes int64 `json:"max_live_bytes"`
	Files        int64 `json:"files"`
}

type actorUsage struct {
	Reservations    int64 `json:"reservations"`
	MaxReservations int64 `json:"max_reservations"`
}

func endpoint(auth httpapi.Authenticator, meter *files.Meter, maxBytes, maxReservations int64) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth: auth,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			u, err := meter.Usage(ctx, r.Caller)
			if err != nil {
				return nil, err
			}
			return httpapi.OK(usage{
				Account: accountUsage{LiveBytes: u.LiveBytes, MaxLiveBytes: maxBytes, Files: u.Files},
				Actor:   actorUsage{Reservations: u.Reservations, MaxReservations: maxReservations},
			})
		},
	}
}

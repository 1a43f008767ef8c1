// Package enrich asks a service of the operator's for more fields of documents, such as a vector or
// a language, before they are written: once for each burst (docs/enrich.md is the contract).
//
// It promises: one outcome for each document, matched by id and never by place. Whatever a service
// answers, too much or too little or nothing that is JSON, has a defined outcome. Memory is bounded
// by [MaxRequest], [MaxAnswer] and [MaxFields]. A [Caller] carries the bytes, one package a kind.
package enrich

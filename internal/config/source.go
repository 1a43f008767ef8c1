package config

// SourceKind is an upstream format.
type SourceKind string

// The kinds of sources.
const (
	SourceNative         SourceKind = "native"
	SourceGovuk          SourceKind = "govuk"
	SourceS3             SourceKind = "s3"
	SourceDynamoDBStream SourceKind = "dynamodb-stream"
	SourceDebezium       SourceKind = "debezium"
	SourceJSON           SourceKind = "json"
)

// Class is how the versions of a source compare.
type Class string

// The version classes.
const (
	ClassInt  Class = "int"
	ClassSeq  Class = "seq"
	ClassTime Class = "time"
	ClassLSN  Class = "lsn"
	ClassLex  Class = "lex"
)

// NoVersion is what happens to an event without a version.
type NoVersion string

// The policies for events without a version.
const (
	NoVersionRefuse  NoVersion = "refuse"
	NoVersionArrival NoVersion = "arrival"
)

// Source is one adapter from an upstream format to events.
type Source struct {
	// Kind is the format; required.
	Kind SourceKind `json:"kind"`
	// Class is how its versions compare. Default by kind: int; seq for s3; lsn for debezium; time
	// where NoVersion is arrival.
	Class Class `json:"class"`
	// Epoch is raised by an operator after the upstream was restored from a backup and its counter
	// went back. Default 0.
	Epoch uint32 `json:"epoch"`
	// NoVersion is "refuse" or "arrival" (the last arrival wins; not for govuk, s3 and
	// dynamodb-stream). Default "refuse".
	NoVersion NoVersion `json:"noVersion"`
	// Collection is where its events go that name none. Default: the config's DefaultCollection.
	Collection string `json:"collection"`
	// Projection are JSON pointers to the parts that become the document. Empty means the payload
	// as it is.
	Projection []string `json:"projection"`

	// Options of one kind; set only beside that kind.
	Govuk    Govuk    `json:"govuk"`
	JSON     JSON     `json:"json"`
	Debezium Debezium `json:"debezium"`
	S3       S3       `json:"s3"`
}

// Govuk are the options of the kind govuk. Nil lists mean GOV.UK's own, empty lists mean none.
type Govuk struct {
	// IgnoreTypes are document types that are deleted unless their path is in OverridePaths.
	IgnoreTypes []string `json:"ignoreTypes"`
	// IgnorePrefixes are prefixes of document types, treated likewise.
	IgnorePrefixes []string `json:"ignorePrefixes"`
	// OverridePaths are base paths that are indexed whatever their type; the segment * stands for
	// any one segment.
	OverridePaths []string `json:"overridePaths"`
	// Locales are the locales to index; others are skipped. A message without a locale counts as
	// en. Default [en].
	Locales []string `json:"locales"`
}

// JSON are the options of the kind json: pointers (RFC 6901) into the message.
type JSON struct {
	// ID points to the document's id; required.
	ID string `json:"id"`
	// Version points to the version; required unless the source's noVersion is arrival.
	Version string `json:"version"`
	// Time points to the event time. Empty means none.
	Time string `json:"time"`
	// Operation points to the value that tells a delete from a put. Empty means that everything is
	// a put.
	Operation string `json:"operation"`
	// DeleteValues are the values at Operation that mean delete.
	DeleteValues []string `json:"deleteValues"`
	// Collection points to the collection's name. Empty means the source's collection.
	Collection string `json:"collection"`
}

// Debezium are the options of the kind debezium: pointers (RFC 6901) into the change event's
// payload.
type Debezium struct {
	// Key points to the document's id. Empty means the message's key payload.
	Key string `json:"key"`
	// Version points to the version. Empty means /source/lsn.
	Version string `json:"version"`
}

// S3 are the options of the kind s3. At most one prefix and one suffix are stripped, so that two
// keys never become one document.
type S3 struct {
	// StripPrefix is removed from the beginning of a key. Empty means none.
	StripPrefix string `json:"stripPrefix"`
	// StripSuffix is removed from the end of a key. Empty means none.
	StripSuffix string `json:"stripSuffix"`
}

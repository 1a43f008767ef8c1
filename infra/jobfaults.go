// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"strconv"

	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/operator/verify"
)

// checkCanary refuses a canary that cannot send a document through each sink.
func (p *Props) checkCanary(fs *faultList) {
	if p.Config.Canary.Every == 0 {
		return
	}
	unfit, err := roundtrip.Unfit(p.Config)
	if err != nil {
		return // ValidateDeployed names the fault of a source
	}
	for _, sink := range sortedKeys(unfit) {
		fs.add("canary.every", sink, "has no document for the sink: "+unfit[sink],
			"let a source write and delete documents of a collection of the sink, or name in canary.collections "+
				"collections of other sinks only, or set it to 0s")
	}
}

// checkVerify refuses verifications that could repair nothing, and more than the list of jobs has
// room for.
func (p *Props) checkVerify(fs *faultList) {
	if n := verify.Count(p.Config); n > verify.MaxScheduled {
		fs.add("collections.<name>.verify", strconv.Itoa(n), fmt.Sprintf("orders %d verifications, one for each sink of "+
			"a collection, and a stack can have %d", n, verify.MaxScheduled), "remove verify from some collections")
	}
	unfit, err := verify.Unfit(p.Config)
	if err != nil {
		return // ValidateDeployed names the fault of a source
	}
	for _, name := range sortedKeys(unfit) {
		fs.add("collections."+name+".verify", "", "cannot be used: lull cannot write a message of the source that names "+
			"one document: "+unfit[name], "remove the setting, and compare with an export (docs/verify.md)")
	}
}

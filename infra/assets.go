package infra

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/names"
)

// bootstrap is the name of the program in a function's zip; lambda.SettingsFile lies beside it.
const bootstrap = "bootstrap"

// assets are the functions' code. Each is staged once and serves every sink: the settings are the
// same, the environment says which sink it is.
type assets map[names.Function]awslambda.Code

// stage lays binary and settings side by side in one folder per function. CDK copies an asset when
// a function takes it, so the folder is only needed until the construct stands; the caller removes
// it.
func stage(p *Props) (dir string, err error) {
	settings, err := json.Marshal(p.Config.Resolve())
	if err != nil {
		return "", fmt.Errorf("stage functions: %w", err)
	}
	dir, err = os.MkdirTemp("", "lull-assets-")
	if err != nil {
		return "", fmt.Errorf("stage functions: %w", err)
	}
	for _, f := range names.Functions() {
		folder := filepath.Join(dir, string(f))
		err := errors.Join(
			os.MkdirAll(folder, 0o755),
			copyProgram(filepath.Join(folder, bootstrap), filepath.Join(p.AssetDir, string(f), bootstrap)),
			os.WriteFile(filepath.Join(folder, lambda.SettingsFile), settings, 0o644),
		)
		if err != nil {
			return "", errors.Join(fmt.Errorf("stage %s: %w", f, err), os.RemoveAll(dir))
		}
	}
	return dir, nil
}

func copyProgram(to, from string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}

// newAssets are the staged folders as code.
func newAssets(dir string) assets {
	a := make(assets)
	for _, f := range names.Functions() {
		a[f] = awslambda.Code_FromAsset(jsii.String(filepath.Join(dir, string(f))), nil)
	}
	return a
}

// Package script runs kk as its users do, by the scripts in testdata. Each is
// a txtar file: commands, then the files that they work with; see the package
// testscript for the commands, and script_test.go for those added here:
//
//	exits CODE command [args...]   runs a command that must end with this exit code
//	secret TEXT [file...]          no file below $WORK but those named contains the text, nor does the last output
//	private path...                files have mode 0600 and folders 0700; what is below counts too
//	await file                     waits until a background command made the file
package script

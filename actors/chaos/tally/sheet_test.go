package tally

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAReportSaysEachRowInItsWay(t *testing.T) {
	var sheet Sheet
	sheet.Add(Result{Section: "a", Name: "one", Expected: "x", Came: "it came", Status: Pass})
	sheet.Add(Result{Section: "a", Name: "two", Expected: "y", Status: Skipped, Reason: "nobody asked"})
	if !sheet.OK() {
		t.Error("no row has failed")
	}
	sheet.Add(Result{Section: "b", Name: "three", Expected: "z", Status: Fail, Reason: "it is wrong"})
	if sheet.OK() || sheet.Passed != 1 || sheet.Failed != 1 || sheet.Skipped != 1 {
		t.Errorf("counted %+v", sheet)
	}
	var text strings.Builder
	if err := sheet.Text(&text, "somebody", []string{"assumed: nothing"}); err != nil {
		t.Fatal(err)
	}
	want := "somebody\n\na\n  pass     one    it came\n  skipped  two    nobody asked\n\nb\n  FAIL     three\n           expected: z\n" +
		"           came:     nothing\n           why:      it is wrong\n\nassumed: nothing\n1 passed, 1 failed, 1 skipped in 0.0 s\n"
	if text.String() != want {
		t.Errorf("it reads\n%s", text.String())
	}
}

// A report has its own members and the sheet's, in one object on one line.
func TestASheetIsPartOfItsReport(t *testing.T) {
	report := struct {
		Target string `json:"target"`
		Sheet
	}{Target: "here"}
	var text strings.Builder
	if err := JSON(&text, &report); err != nil {
		t.Fatal(err)
	}
	if want := `{"target":"here","rows":[],"passed":0,"failed":0,"skipped":0,"ms":0}` + "\n"; text.String() != want || !json.Valid([]byte(text.String())) {
		t.Errorf("it is %s", text.String())
	}
}

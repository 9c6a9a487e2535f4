package expr

// methodRows are the methods of all types.
func methodRows() Methods {
	return Methods{str: stringMethods(), list: listMethods(), dict: dictMethods(), datetime: timeMethods()}
}
